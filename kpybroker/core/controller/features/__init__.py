"""What the controller does about feature levels: `updates` has the rules of UpdateFeatures, `procedures` runs them.

What never lives here: what a level allows, which is in `core.features`.
"""
