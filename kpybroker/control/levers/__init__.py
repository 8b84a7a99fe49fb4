"""What disturbs a running broker from outside, in its seams: its connections (`transport`), its session in the tree
(`tree`), its disk (`disk`), its clock (`movable_clock`). `topology` has those of all brokers of the process.

What never lives here: the methods of the channel (`control.methods`), and anything that a broker without a channel
needs.
"""
