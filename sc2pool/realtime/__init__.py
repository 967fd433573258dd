"""Games that do not wait: paused while the learner learns."""
