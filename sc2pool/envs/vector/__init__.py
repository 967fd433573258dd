"""gymnasium's vector env, and what it does with arguments, spaces and pending calls."""
