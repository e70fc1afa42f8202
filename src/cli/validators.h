#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace stretto::cli {

/// Checks of an option's value, with messages for people.
CLI::Validator whole_number(int64_t min, int64_t max);
CLI::Validator number_between(double min, double max);
CLI::Validator one_of(std::vector<std::string> choices);

}  // namespace stretto::cli
