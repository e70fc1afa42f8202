#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto::data {

/// Answers to questions of SQuAD, as its scripts take them: one JSON object from ids to texts,
/// where an empty text is no answer. In the order of the file.
///
/// @param where  the file, for messages
/// Throws Error(kBadData) for what parse_json() refuses and for what is no object of strings, with
/// the form that is expected.
std::vector<std::pair<std::string, std::string>> parse_predictions(std::string_view bytes,
                                                                   std::string_view where);

/// The probability that a question has no answer, for each id: one JSON object from ids to numbers.
/// In the order of the file, which decides between thresholds of equal probabilities.
std::vector<std::pair<std::string, double>> parse_no_answer_probabilities(std::string_view bytes,
                                                                          std::string_view where);

}  // namespace stretto::data
