"""What is judged in a simulated world, but for what clients note themselves: what only a simulator can look at."""
