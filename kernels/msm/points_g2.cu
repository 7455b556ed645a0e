// The additions of an MSM or a batch addition in G2; all lanes of a warp move together.
#define CUZK_LANE_FIELD LaneFq2<true>
#define CUZK_GROUP g2
#include "points.cuh"
