"""The decisions of readers, simulated: how many there are, and who gives what to whom."""
