#include "group_abi.hpp"

CUZK_GROUP_ABI(g1, Fq)
