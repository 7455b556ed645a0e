// MSM and batch addition in G2.
#define CUZK_LANE_FIELD LaneFq2<true>
#define CUZK_BRANCHING_LANE_FIELD LaneFq2<false>
#define CUZK_GROUP g2
#include "points.cuh"
