// The end of an MSM or a batch addition in G1.
#define CUZK_LANE_FIELD LaneFq
#define CUZK_GROUP g1
#include "tail.cuh"
