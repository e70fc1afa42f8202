#pragma once

#include <string>
#include <string_view>

#include "data/squad/code_points.h"
#include "data/squad/squad_file.h"

/// What is wrong with an answer of a SQuAD file, and what helps.
namespace stretto::data {

/// "" for an answer that is where the file says.
std::string problem_of_answer(const SquadAnswer& answer, const CodePoints& context,
                              const SquadQuestion& question);

/// For an answer with a problem. Looks for it where a program that counts other units would put it,
/// and in another Unicode normalisation.
std::string advice_for_answer(const SquadAnswer& answer, std::string_view text,
                              const CodePoints& context, const SquadQuestion& question);

}  // namespace stretto::data
