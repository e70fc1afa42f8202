#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// English numbers and abbreviations as they are said. Rules are those of the text cleaners that
/// Tacotron's implementations share (K. Ito, "numbers.py"), but for decimals, which are read digit
/// by digit.
namespace stretto::text {

/// "one hundred twenty-three thousand four hundred fifty-six". Below 10^15.
std::string number_words(uint64_t number);
/// "twenty-first"
std::string ordinal_words(uint64_t number);

/// A text with its numbers in words:
///
///     1,024                one thousand twenty-four     commas part groups of three digits
///     1999, 1905, 2004     nineteen ninety-nine, nineteen oh five, two thousand four
///     1900                 nineteen hundred             1001 to 2999 are said as years
///     21st                 twenty-first
///     3.14                 three point one four
///     $2.50, £3            two dollars, fifty cents; three pounds
///     007, 10^15 and more  digit by digit
std::string with_number_words(std::string_view text);

/// A text with "Mr." as "mister", "Dr." as "doctor" and so on, whatever their case.
std::string with_whole_titles(std::string_view text);

}  // namespace stretto::text
