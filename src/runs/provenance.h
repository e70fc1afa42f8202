#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "runs/checkpointer.h"
#include "store/checkpoint.h"

namespace stretto::runs {

/// Whether a file that a run keeps beside its checkpoints is the tokenizer's: names of labels, for
/// instance, are not.
bool is_of_tokenizer(std::string_view asset);

/// SHA-256 of each file of a tokenizer: name -> 64 hex digits.
/// @param assets  name -> bytes, as `text::TokenizerPair` and RunFolder have them; files of others
///                do not count
std::map<std::string, std::string> tokenizer_hashes(
    const std::map<std::string, std::string>& assets);

/// What a checkpoint that this program writes for a run says of where it comes from.
store::Provenance provenance_of(const RunIdentity& identity);

/// The first file of a tokenizer that is not the one that something was trained with, and both
/// hashes: "joint.model: SHA-256 ab…, trained with SHA-256 cd…". Empty when all are the same, or
/// one side does not know its files.
std::string tokenizer_difference(const std::map<std::string, std::string>& trained_with,
                                 const std::map<std::string, std::string>& hashes);
std::string tokenizer_difference(const store::LoadedCheckpoint& checkpoint,
                                 const std::map<std::string, std::string>& hashes);

/// Weights mean something with their tokenizer only: another one with as many pieces loads, and
/// gives nonsense. Throws Error(kBadData) naming file, folder and both hashes when the checkpoint
/// was trained with others than `hashes`.
/// @param folder  where the files lie, for the message
void require_same_tokenizer(const store::LoadedCheckpoint& checkpoint,
                            const std::map<std::string, std::string>& hashes,
                            const std::filesystem::path& folder);

}  // namespace stretto::runs
