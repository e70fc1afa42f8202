#!/bin/sh
# cached_compiler.sh SOURCE_FOLDER CCACHE COMPILER ARGUMENT...: compiles through the compiler cache.
#
# With a precompiled header ccache needs these freedoms, else every file is a miss.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_BASEDIR="$1"
shift
# While an old precompiled header stands where a new one goes, the preprocessor reads it instead of the headers, and ccache
# answers with what was once made in its place: perhaps of other headers.
output=
for argument; do
  [ "$output" != -o ] || case $argument in *.gch | *.pch) rm -f -- "$argument" ;; esac
  output=$argument
done
exec "$@"
