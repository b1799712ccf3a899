#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace krigtune {

/// The most bytes that a document may have: a session, a configuration, a recipe or a template.
inline constexpr std::size_t kMostTextBytes = std::size_t{64} << 20;
/// The most bytes that a table may have: trials.csv, measurements to replay, or a journal of another program.
inline constexpr std::size_t kMostTableBytes = std::size_t{1} << 30;

/// Opens a regular file for reading, and closes it in the destructor. It never waits, as opening a named pipe would.
class RegularFile {
 public:
  explicit RegularFile(const std::filesystem::path& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  /// A descriptor below 0 means that the file cannot be read; `trouble` then says why.
  int descriptor() const { return descriptor_; }
  /// Says for people why the file cannot be read ("it is a directory", "Permission denied"); empty if it can.
  const std::string& trouble() const { return trouble_; }
  /// The errno of the last failure to open or to read; 0 if there was none.
  int error() const { return error_; }
  /// Returns at most `most_bytes` from `offset` on; fewer where the file ends or the disk fails.
  std::string read(std::size_t offset, std::size_t most_bytes) const;
  /// Returns the size that fstat reports, which is also 0 for files whose text the kernel makes up (/proc).
  std::size_t size_bytes() const;

 private:
  int descriptor_ = -1;
  mutable int error_ = 0;
  std::string trouble_;
};

/// Reads a whole file: a regular one, or a pipe that this process was given (/dev/stdin, a shell's `<(...)`). Throws
/// UserError naming the path when it cannot be read or has more than `most_bytes`, and EnvironmentError when the
/// machine lacks something that reading needs.
std::string read_text(const std::filesystem::path& path, std::size_t most_bytes = kMostTextBytes);

/// Writes to a temporary file beside `path`, calls fsync and renames it, so that readers see the old text or the new
/// one, never a part. A symbolic link is replaced, never followed; a device, a pipe or /dev/stdout is written to. An
/// existing file keeps its permissions; a new one gets 0666 less the umask. Throws EnvironmentError when the text
/// cannot be written.
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// Does the same for a file that may hold a secret: a new file gets 0600 less the umask.
void write_private(const std::filesystem::path& path, std::string_view text);

/// Does the same as write_atomically for a file that is only information for people, whose loss must not end anything:
/// a trial may have removed its directory, or put something else in its place. Returns false if it was not written.
bool write_if_possible(const std::filesystem::path& path, std::string_view text);

/// Does the same without waiting for the disk, for files that can be made again: readers see the old text or the new
/// one, but the file may be lost if the machine loses power. Thousands of files take a second this way, and minutes
/// with write_atomically; the caller calls sync_file_system once after the last of them.
void write_derived(const std::filesystem::path& path, std::string_view text);

/// Waits until everything that was written to the file system of `directory` is on its disk. Throws EnvironmentError
/// when that fails.
void sync_file_system(const std::filesystem::path& directory);

/// Removes the temporary files that writers killed in this directory have left: those last written more than ten
/// minutes before `reference`, a file in it. Files that cannot be removed stay.
void remove_old_temporaries(const std::filesystem::path& reference);

/// Opens a file for writing from its beginning; returns -1 with errno set on failure. A symbolic link is not followed
/// (ELOOP).
int open_output(const std::filesystem::path& path);

/// Appends the text to an existing file and calls fsync. A symbolic link is not followed. Throws EnvironmentError when
/// that fails; a part of the text may then be in the file.
void append_durably(const std::filesystem::path& path, std::string_view text);

/// Writes all of the text to an open file descriptor, in as many calls as that takes. Returns false with errno set on
/// failure.
bool write_all(int file, std::string_view text);

/// Makes the directory with its parents and checks that files can be made in it. Throws UserError where the path does
/// not allow that, and EnvironmentError where the disk is full or fails.
void make_writable_directory(const std::filesystem::path& path);

/// Returns the directory for what krigtune can make again: $KRIGTUNE_CACHE, $XDG_CACHE_HOME/krigtune or
/// ~/.cache/krigtune; empty if none of these variables is set. The directory need not exist.
std::filesystem::path cache_directory();

/// Finds a program by its path, relative to `directory`, or by its name in the folders of `search_path`, which has the
/// form of PATH. Returns an empty path if there is no such program that may be run.
std::filesystem::path find_program(const std::string& name, const std::filesystem::path& directory,
                                   const std::string& search_path);
/// Returns PATH, or where it is not set the folders that execvp searches then.
std::string program_search_path();

}  // namespace krigtune
