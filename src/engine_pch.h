// The one precompiled header of the rooms that use libtorch; see cmake/StrettoRooms.cmake.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
