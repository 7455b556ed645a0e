// The end of an MSM or a batch addition in G2; only a pair of lanes moves together.
#define CUZK_LANE_FIELD LaneFq2<false>
#define CUZK_GROUP g2
#include "tail.cuh"
