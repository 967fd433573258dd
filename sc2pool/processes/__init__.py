"""Operating-system processes: started, watched, stopped, and ended with their parent."""
