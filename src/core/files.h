#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace krigtune {

/// What a document may have: a session, a configuration, a recipe, a template.
inline constexpr std::size_t kMostTextBytes = std::size_t{64} << 20;
/// What a table may have: trials.csv, measurements to replay, a journal of another program.
inline constexpr std::size_t kMostTableBytes = std::size_t{1} << 30;

/// Opens a regular file for reading and closes itself. Never waits, as opening a named pipe would.
class RegularFile {
 public:
  explicit RegularFile(const std::filesystem::path& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  /// Below 0: it cannot be read; see `trouble`.
  int descriptor() const { return descriptor_; }
  /// Why not, for people: "it is a directory", "Permission denied". Empty: it can be read.
  const std::string& trouble() const { return trouble_; }
  /// The errno of the last failure to open or to read; 0: none.
  int error() const { return error_; }
  /// At most so many bytes from `offset` on; fewer where the file ends or the disk fails.
  std::string read(std::size_t offset, std::size_t most_bytes) const;
  /// As fstat says; 0 also where the kernel makes the text up (/proc).
  std::size_t size_bytes() const;

 private:
  int descriptor_ = -1;
  mutable int error_ = 0;
  std::string trouble_;
};

/// The whole file: a regular one, or a pipe that this process was given (/dev/stdin, a shell's `<(...)`). Throws
/// UserError naming the path when it cannot be read or has more than `most_bytes`, EnvironmentError when the machine
/// lacks something that reading needs.
std::string read_text(const std::filesystem::path& path, std::size_t most_bytes = kMostTextBytes);

/// Writes to a temporary file beside `path`, fsyncs and renames: readers see the old text or the new, never a part. A
/// symbolic link is replaced, never followed; a device, a pipe or /dev/stdout is written to. A file that is there keeps
/// its permissions; a new one has those that the umask leaves of 0666. Throws EnvironmentError when the disk refuses.
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// The same where the file may hold a secret: a new one has 0600, less what the umask takes.
void write_private(const std::filesystem::path& path, std::string_view text);

/// The same as write_atomically where the file is only information for people, and nothing is to end because of it: a
/// trial may have removed its directory, or put something else in the file's place. False: it was not written.
bool write_if_possible(const std::filesystem::path& path, std::string_view text);

/// The same without waiting for the disk, for files that can be made again: readers see the old text or the new, and a
/// machine that loses power may lose it. Thousands of files take a second so, and minutes with write_atomically; the
/// last of them is followed by one sync_file_system.
void write_derived(const std::filesystem::path& path, std::string_view text);

/// Waits until everything that was written to the file system of that directory is on its disk. Throws EnvironmentError
/// when the disk refuses.
void sync_file_system(const std::filesystem::path& directory);

/// Removes the temporary files that writers of this directory left when they were killed: those last written ten
/// minutes or more before `reference`, a file there. What cannot be removed stays.
void remove_old_temporaries(const std::filesystem::path& reference);

/// Opens a file for writing from its beginning; -1 with errno set on failure. A symbolic link is not followed (ELOOP).
int open_output(const std::filesystem::path& path);

/// Adds the text to the end of a file that is there, and fsyncs. A symbolic link is not followed. Throws
/// EnvironmentError when the disk refuses: a part of the text may then be there.
void append_durably(const std::filesystem::path& path, std::string_view text);

/// Writes all of the text to an open file descriptor, however many calls that takes. False with errno set on failure.
bool write_all(int file, std::string_view text);

/// Makes the directory with its parents and checks that files can be made in it. Throws UserError where the path does
/// not allow that, EnvironmentError where the disk is full or fails.
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
