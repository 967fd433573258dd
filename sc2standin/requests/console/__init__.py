"""Actions of a client with a screen: clicks on it, and buttons of the user interface."""
