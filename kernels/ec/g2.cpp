#include "group_abi.hpp"

CUZK_GROUP_ABI(g2, Fq2)
