# SPDX-License-Identifier: MIT
# Runs at installation: puts the licence texts of what the programs link, or include, into FOLDER, one
# compressed file for each package of Debian. LIBRARIES are shared libraries and headers.
# Where dpkg does not know a file, its licence must come from elsewhere: a message names it.
find_program(DPKG_QUERY dpkg-query)
foreach(path ${LIBRARIES})
  file(REAL_PATH ${path} path)
  set(package "")
  if(DPKG_QUERY)
    # dpkg may list a file of /usr/lib under /lib.
    string(REGEX REPLACE "^/usr/lib/" "/lib/" other ${path})
    foreach(name ${path} ${other})
      if(NOT package)
        execute_process(COMMAND ${DPKG_QUERY} -S ${name}
          OUTPUT_VARIABLE package ERROR_QUIET RESULT_VARIABLE failed)
        string(REGEX REPLACE "[:,].*" "" package "${package}")
      endif()
    endforeach()
  endif()
  if(package AND EXISTS /usr/share/doc/${package}/copyright)
    file(MAKE_DIRECTORY ${FOLDER})
    file(ARCHIVE_CREATE OUTPUT ${FOLDER}/${package}.gz PATHS /usr/share/doc/${package}/copyright
      FORMAT raw COMPRESSION GZip)
  else()
    message(STATUS "No licence text found for ${path}")
  endif()
endforeach()
