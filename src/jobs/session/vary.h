#pragma once
#include <string>

#include "core/json.h"

namespace krigtune::jobs {

// The meaning of `--vary 'NAME=FLAG:VALUES'`: a parameter, the place of its value in the user's command, and the values
// to try.
//
//   micro_batch=--mbs:1,2,4,8            a flag of the command
//   lr=train.lr=:1e-5..1e-2:log          an override word, as Hydra's
//   workers=$NUM_WORKERS:0..8            an environment variable
//   seq=conf/train.yaml#data.seq_len:512,1024   a key of a file that the command names
//   compile=--compile:true,false         a switch that is present or absent

/// The place of a value in a command.
struct VaryPlace {
  enum class Is {
    kFlag,      ///< "--mbs 4" or "--mbs=4"
    kOverride,  ///< "train.lr=3e-4", a word of its own
    kVariable,  ///< an environment variable
    kFileKey,   ///< a key of a YAML, TOML or JSON file
  };
  Is is = Is::kFlag;
  std::string name;          ///< "--mbs", "train.lr", "NUM_WORKERS", "data.seq_len"; "+data.x" if the file lacks it
  std::string file;          ///< kFileKey: as the user writes it
  bool is_joined = false;    ///< kFlag: "--mbs=" if it must be appended
  std::string text() const;  ///< as it was written
};

struct Vary {
  std::string text;  ///< the whole text, for messages
  std::string name;  ///< name of the parameter
  VaryPlace place;
  Json values;  ///< as in a session's block "space"; null: the session decides
};

/// Throws UserError with the text and what to write instead.
Vary read_vary(const std::string& text);

/// Parses VALUES to "[1, 2, 4]", {"min": 1, "max": 64, "scale": "log2"}, ...; errors begin with `where`.
///   a,b,c         a list of numbers, of texts, or of true and false
///   1..8          every integer
///   1..64:log2    the powers of two
///   1e-5..1e-2    continuous; with :log on a logarithmic scale. A point or an exponent in an end makes it continuous.
///   16..4096:log  integers, two per doubling
Json read_values(const std::string& text, const std::string& where);

}  // namespace krigtune::jobs
