#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Which configurations in run folders are this user's own.
///
/// A run folder that somebody else packed may name any file of this machine in its `config.toml`,
/// and neither the owner of the file nor its checksum tells whose paths they are. So training marks
/// what it writes with a secret of the user (HMAC-SHA-256). The secret is made once, and lies in
/// the user's state folder, which is no part of any run: $STRETTO_STATE, else
/// $XDG_STATE_HOME/stretto, else ~/.local/state/stretto.
namespace stretto::store {

/// The file of the secret; empty when there is no home folder.
std::filesystem::path owner_key_path();

/// The mark of this user under `text`: 64 hex digits. Makes the secret where there is none. Empty
/// when it can neither be read nor written; training goes on without a mark then.
std::string owner_mark(std::string_view text);

/// Whether `mark` is what owner_mark() gives. Makes nothing.
bool is_own_mark(std::string_view text, std::string_view mark);

}  // namespace stretto::store
