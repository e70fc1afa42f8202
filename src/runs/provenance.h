#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "runs/checkpointer.h"
#include "store/checkpoint.h"

namespace stretto::runs {

/// SHA-256 of each file of a tokenizer: name -> 64 hex digits.
/// @param assets  name -> bytes, as `text::TokenizerPair` and tasks::FamilyTask have them
std::map<std::string, std::string> tokenizer_hashes(
    const std::map<std::string, std::string>& assets);

/// The same of all files that a run folder keeps. Those count that something was trained with, and
/// those that a tokenizer is read from (text::is_tokenizer_asset()), but not what a family of tasks
/// keeps beside them.
/// @param trained_with  of a checkpoint's provenance; empty = unknown
std::map<std::string, std::string> tokenizer_hashes(
    const std::map<std::string, std::string>& assets,
    const std::map<std::string, std::string>& trained_with);

/// What a checkpoint that this program writes for a run says of where it comes from.
store::Provenance provenance_of(const RunIdentity& identity);

/// The first file of a tokenizer that is not the one that something was trained with, and both
/// hashes: "joint.model: SHA-256 ab…, trained with SHA-256 cd…". Empty when all are the same, or
/// one side does not know its files.
std::string tokenizer_difference(const std::map<std::string, std::string>& trained_with,
                                 const std::map<std::string, std::string>& hashes);
std::string tokenizer_difference(const store::LoadedCheckpoint& checkpoint,
                                 const std::map<std::string, std::string>& hashes);

/// What differs by such a text, which is not empty: "tokenizer", or the name of a file that a
/// family of tasks keeps beside those of the tokenizer.
std::string what_differs(const std::string& difference);

/// Weights mean something with their tokenizer only: another one with as many pieces loads, and
/// gives nonsense. Throws Error(kBadData) naming file, folder and both hashes when the checkpoint
/// was trained with others than `hashes`.
/// @param folder  where the files lie, for the message
void require_same_tokenizer(const store::LoadedCheckpoint& checkpoint,
                            const std::map<std::string, std::string>& hashes,
                            const std::filesystem::path& folder);

}  // namespace stretto::runs
