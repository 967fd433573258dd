"""`sc2pool train --self-play`: what a run has more if the policy is trained against itself."""
