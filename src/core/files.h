#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace krigtune {

/// The whole file. Throws UserError naming the path when it cannot be read.
std::string read_text(const std::filesystem::path& path);

/// Writes to a temporary file beside `path`, fsyncs and renames: readers see the old text or the new, never a part.
/// Throws EnvironmentError when the disk refuses.
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// The same where the file is only information for people, and nothing is to end because of it: a trial may have
/// removed its directory, or put something else in the file's place. False: it was not written.
bool write_if_possible(const std::filesystem::path& path, std::string_view text);

/// The same without waiting for the disk, for files that can be made again: readers see the old text or the new, and a
/// machine that loses power may lose it. Thousands of files take a second so, and minutes with write_atomically; the
/// last of them is followed by one sync_file_system.
void write_derived(const std::filesystem::path& path, std::string_view text);

/// Waits until everything that was written to the file system of that directory is on its disk. Throws EnvironmentError
/// when the disk refuses.
void sync_file_system(const std::filesystem::path& directory);

/// Adds the text to the end of a file that is there, and fsyncs. Throws EnvironmentError when the disk refuses: a part
/// of the text may then be there.
void append_durably(const std::filesystem::path& path, std::string_view text);

/// Writes all of the text to an open file descriptor, however many calls that takes. False with errno set on failure.
bool write_all(int file, std::string_view text);

/// Makes the directory with its parents and checks that files can be made in it. Throws UserError otherwise.
void make_writable_directory(const std::filesystem::path& path);

/// Where krigtune keeps what it can make again: $KRIGTUNE_CACHE, $XDG_CACHE_HOME/krigtune or ~/.cache/krigtune. Empty
/// where the environment says nothing. Need not exist.
std::filesystem::path cache_directory();

/// The program of that name: a path, relative to `directory`, or a name in one of the folders of `search_path`, which
/// is as PATH is. Empty: there is none that may be run.
std::filesystem::path find_program(const std::string& name, const std::filesystem::path& directory,
                                   const std::string& search_path);
/// PATH, or what execvp takes without it.
std::string program_search_path();

}  // namespace krigtune
