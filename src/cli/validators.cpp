#include "cli/validators.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "config/schema.h"

namespace stretto::cli {

CLI::Validator whole_number(int64_t min, int64_t max) {
  return CLI::Validator(
      [min, max](const std::string& text) -> std::string {
        int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        if (whole && value >= min && value <= max) return "";
        return "must be a whole number from " + std::to_string(min) +
               (max < INT64_MAX ? " to " + std::to_string(max) : " on") + ", got `" +
               printable(text) + "`";
      },
      "");
}

CLI::Validator number_between(double min, double max) {
  return CLI::Validator(
      [min, max](const std::string& text) -> std::string {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool number = error == std::errc() && end == text.data() + text.size();
        if (number && value >= min && value <= max) return "";
        return "must be a number from " + config::number_text(min) + " to " +
               config::number_text(max) + ", got `" + printable(text) + "`";
      },
      "");
}

CLI::Validator one_of(std::vector<std::string> choices) {
  return CLI::Validator(
      [choices = std::move(choices)](std::string& text) -> std::string {
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) return "";
        const std::string near = closest(text, choices);
        return "must be one of " + join(choices, ", ") + ", got `" + printable(text) + "`" +
               (near.empty() ? "" : "; did you mean `" + near + "`?");
      },
      "");
}

}  // namespace stretto::cli
