"""What a simulated broker is given in place of the real world, and what makes the order of everything a seed's."""
