"""What a run writes of how it goes: episodes, logs, and the learning curve drawn from them."""
