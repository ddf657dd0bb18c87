/* Notes what a process does to the files of one folder, cuts the power at a chosen change, or fills the disk.

Loaded with LD_PRELOAD into a process that writes a store. Each change (a write, a truncation, a new, renamed or removed
file, and each fsync) is carried out and appended to a journal. `disk.py` reads the journal and works out what a disk
keeps that loses what wasn't synced. fsync does nothing else here: the journal knows what was synced.

The control page is shared with the test: see `struct control`. Linux only. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 65536

struct control {
    int64_t changes;   /* so far, of all processes */
    int64_t cut_at;    /* the change at which the power is cut; 0 for never */
    int64_t group;     /* the process group that dies then */
    int64_t full_from; /* the change from which on the disk is full; 0 for never */
    int64_t full_kind; /* 1: no file grows; 2: nothing is written; 3: and fsync fails, too */
    int64_t refused;   /* calls that failed for lack of space */
};

struct record {
    char magic[4];
    char kind;
    char padding[3];
    uint64_t file, folder, offset;
    uint32_t names, data; /* bytes that follow */
};

static struct control *control;
static int journal = -1;
static char root[PATH_MAX];
static uint64_t inode_of[FILES]; /* of the folder's files that are open here, by descriptor; 0 for all others */

#define REAL(name) ((typeof(&name))real(#name))
static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) abort();
    return found;
}

/* Begin to note the changes of a folder; the test calls this in a child, or names the files in the environment. */
int disk_begin(const char *folder, const char *control_file, const char *journal_file) {
    int handle = syscall(SYS_openat, AT_FDCWD, control_file, O_RDWR | O_CLOEXEC, 0);
    if (handle < 0 || realpath(folder, root) == NULL) return -1;
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    syscall(SYS_close, handle);
    if (control == MAP_FAILED) return -1;
    journal = syscall(SYS_openat, AT_FDCWD, journal_file, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    return journal < 0 ? -1 : 0;
}

__attribute__((constructor)) static void begin_by_environment(void) {
    const char *folder = getenv("STRESS_DISK_FOLDER");
    if (folder == NULL) return;
    if (disk_begin(folder, getenv("STRESS_DISK_CONTROL"), getenv("STRESS_DISK_JOURNAL")) != 0) abort();
}

static void note(char kind, uint64_t file, uint64_t folder, uint64_t offset, const char *names, size_t names_size,
                 const void *data, size_t size) {
    int before = errno;
    struct record record = {{'D', 'I', 'S', 'K'}, kind, {0}, file, folder, offset, names_size, size};
    struct iovec parts[3] = {{&record, sizeof record}, {(void *)names, names_size}, {(void *)data, size}};
    syscall(SYS_writev, journal, parts, 3);
    int64_t number = __atomic_add_fetch(&control->changes, 1, __ATOMIC_SEQ_CST);
    if (control->cut_at != 0 && number >= control->cut_at) {
        if (getpgrp() == control->group) kill(-getpgrp(), SIGKILL);
        kill(getpid(), SIGKILL);
    }
    errno = before;
}

static int tracked(int handle) { return journal >= 0 && handle >= 0 && handle < FILES && inode_of[handle] != 0; }

static int is_full(int kind) {
    if (control->full_from == 0 || control->changes < control->full_from || control->full_kind < kind) return 0;
    __atomic_add_fetch(&control->refused, 1, __ATOMIC_SEQ_CST);
    errno = ENOSPC;
    return 1;
}

/* How many bytes of a write there is room for; 0 means none. */
static size_t room(int handle, off_t offset, size_t size) {
    struct stat found;
    if (control->full_from == 0 || control->changes < control->full_from) return size;
    if (control->full_kind >= 2) return is_full(2) ? 0 : size;
    if (fstat(handle, &found) != 0 || offset + (off_t)size <= found.st_size) return size;
    if (offset >= found.st_size) return is_full(1) ? 0 : size;
    return found.st_size - offset; /* up to the end of what the file has: a short write */
}

/* ---- where a name is */

/* Return the inode of an open file or folder if it is the watched folder or in it, otherwise 0. */
static uint64_t inode_inside(int handle) {
    char link[64], whole[PATH_MAX], number[24], *end = number + sizeof number;
    struct stat found;
    *--end = 0;
    for (int left = handle; left || !*end; left /= 10) *--end = '0' + left % 10;
    stpcpy(stpcpy(link, "/proc/self/fd/"), end);
    ssize_t got = readlink(link, whole, sizeof whole - 1);
    if (got <= 0) return 0;
    whole[got] = 0;
    size_t prefix = strlen(root);
    if (strncmp(whole, root, prefix) != 0 || (whole[prefix] != 0 && whole[prefix] != '/')) return 0;
    return fstat(handle, &found) == 0 ? found.st_ino : 0;
}

/* Return the inode of the folder that a path is in, 0 for one outside; `name` is set to its last part. */
static uint64_t folder_of(int at, const char *path, const char **name) {
    static __thread char text[PATH_MAX];
    if (journal < 0) return 0;
    strncpy(text, path, sizeof text - 1);
    size_t length = strlen(text);
    while (length > 1 && text[length - 1] == '/') text[--length] = 0;
    char *slash = strrchr(text, '/');
    *name = slash == NULL ? text : slash + 1;
    char base[PATH_MAX] = ".";
    if (slash != NULL) {
        memcpy(base, text, slash - text);
        base[slash == text ? 1 : slash - text] = 0;
        if (slash == text) base[0] = '/';
    }
    int handle = syscall(SYS_openat, at, base, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (handle < 0) return 0;
    uint64_t inode = inode_inside(handle);
    syscall(SYS_close, handle);
    return inode;
}

/* ---- opening and closing */

static int open_noted(int at, const char *path, int flags, mode_t mode) {
    const char *name;
    struct stat found;
    if (journal < 0) return syscall(SYS_openat, at, path, flags, mode);
    int before = errno;
    uint64_t folder = flags & O_CREAT ? folder_of(at, path, &name) : 0;
    int is_new = folder != 0 && fstatat(at, path, &found, 0) != 0;
    if (is_new && control->full_kind >= 2 && is_full(2)) return -1;
    int handle = syscall(SYS_openat, at, path, flags, mode);
    if (handle < 0 || handle >= FILES) return handle;
    inode_of[handle] = inode_inside(handle);
    if (inode_of[handle] != 0 && is_new)
        note('C', inode_of[handle], folder, 0, name, strlen(name), NULL, 0);
    else if (inode_of[handle] != 0 && (flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY)
        note('T', inode_of[handle], 0, 0, NULL, 0, NULL, 0);
    errno = before;
    return handle;
}

#define MODE_OF(flags, mode)                          \
    mode_t mode = 0;                                  \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {          \
        va_list more;                                 \
        va_start(more, flags);                        \
        mode = va_arg(more, mode_t);                  \
        va_end(more);                                 \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_noted(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_noted(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int at, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_noted(at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_noted(at, path, flags | O_LARGEFILE, mode);
}
int creat(const char *path, mode_t mode) { return open_noted(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int close(int handle) {
    if (handle >= 0 && handle < FILES) inode_of[handle] = 0;
    return REAL(close)(handle);
}

/* ---- content */

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t offset) {
    if (!tracked(handle)) return REAL(pwrite64)(handle, data, size, offset);
    size_t fits = room(handle, offset, size);
    if (fits == 0 && size != 0) return -1;
    ssize_t done = REAL(pwrite64)(handle, data, fits, offset);
    if (done > 0) note('W', inode_of[handle], 0, offset, NULL, 0, data, done);
    return done;
}
ssize_t pwrite(int handle, const void *data, size_t size, off_t offset) { return pwrite64(handle, data, size, offset); }

ssize_t write(int handle, const void *data, size_t size) {
    if (!tracked(handle)) return REAL(write)(handle, data, size);
    struct stat found;
    int appends = fcntl(handle, F_GETFL) & O_APPEND;
    off_t at = appends && fstat(handle, &found) == 0 ? found.st_size : lseek(handle, 0, SEEK_CUR);
    size_t fits = room(handle, at, size);
    if (fits == 0 && size != 0) return -1;
    ssize_t done = REAL(write)(handle, data, fits);
    if (done > 0) note('W', inode_of[handle], 0, lseek(handle, 0, SEEK_CUR) - done, NULL, 0, data, done);
    return done;
}

ssize_t writev(int handle, const struct iovec *parts, int count) {
    if (!tracked(handle)) return REAL(writev)(handle, parts, count);
    ssize_t whole = 0;
    for (int each = 0; each < count; each++) {
        ssize_t done = write(handle, parts[each].iov_base, parts[each].iov_len);
        if (done < 0) return whole ? whole : -1;
        whole += done;
        if ((size_t)done < parts[each].iov_len) break;
    }
    return whole;
}

int ftruncate64(int handle, off64_t size) {
    if (!tracked(handle)) return REAL(ftruncate64)(handle, size);
    int done = REAL(ftruncate64)(handle, size);
    if (done == 0) note('T', inode_of[handle], 0, size, NULL, 0, NULL, 0);
    return done;
}
int ftruncate(int handle, off_t size) { return ftruncate64(handle, size); }

/* Nothing is written that isn't noted: whoever asks for these gets to write by the calls above. */
int fallocate64(int handle, int mode, off64_t offset, off64_t size) {
    if (!tracked(handle)) return REAL(fallocate64)(handle, mode, offset, size);
    errno = EOPNOTSUPP;
    return -1;
}
int fallocate(int handle, int mode, off_t offset, off_t size) { return fallocate64(handle, mode, offset, size); }
ssize_t sendfile64(int to, int from, off64_t *offset, size_t size) {
    if (tracked(to)) {
        errno = ENOTSOCK;
        return -1;
    }
    return syscall(SYS_sendfile, to, from, offset, size);
}
ssize_t sendfile(int to, int from, off_t *offset, size_t size) { return sendfile64(to, from, offset, size); }
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *offset, size_t size, unsigned flags) {
    if (tracked(to)) {
        errno = EXDEV;
        return -1;
    }
    return syscall(SYS_copy_file_range, from, at, to, offset, size, flags);
}

static int sync_noted(int handle) {
    if (control->full_kind >= 3 && is_full(3)) return -1;
    note('S', inode_of[handle], 0, 0, NULL, 0, NULL, 0);
    return 0;
}
int fsync(int handle) { return tracked(handle) ? sync_noted(handle) : REAL(fsync)(handle); }
int fdatasync(int handle) { return tracked(handle) ? sync_noted(handle) : REAL(fdatasync)(handle); }

/* ---- names */

static uint64_t inode_at(int at, const char *path) {
    struct stat found;
    return fstatat(at, path, &found, AT_SYMLINK_NOFOLLOW) == 0 ? found.st_ino : 0;
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    const char *name;
    char names[2 * PATH_MAX];
    uint64_t old_folder = folder_of(from, old, &name);
    size_t first = 0;
    if (old_folder) first = stpcpy(names, name) - names + 1;
    uint64_t new_folder = folder_of(to, new, &name);
    uint64_t inode = old_folder && new_folder ? inode_at(from, old) : 0;
    if (inode && control->full_kind >= 2 && is_full(2)) return -1;
    int done = syscall(SYS_renameat2, from, old, to, new, flags);
    if (done == 0 && inode) {
        size_t size = stpcpy(names + first, name) - names;
        note('R', new_folder, old_folder, inode, names, size, NULL, 0);
    }
    return done;
}
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int at, const char *path, int flags) {
    const char *name;
    uint64_t folder = folder_of(at, path, &name);
    int done = syscall(SYS_unlinkat, at, path, flags);
    if (done == 0 && folder) note('U', 0, folder, 0, name, strlen(name), NULL, 0);
    return done;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int done = unlinkat(AT_FDCWD, path, 0);
    return done != 0 && errno == EISDIR ? rmdir(path) : done;
}

int mkdirat(int at, const char *path, mode_t mode) {
    const char *name;
    uint64_t folder = folder_of(at, path, &name);
    if (folder && control->full_kind >= 2 && is_full(2)) return -1;
    int done = syscall(SYS_mkdirat, at, path, mode);
    if (done == 0 && folder) note('M', inode_at(at, path), folder, 0, name, strlen(name), NULL, 0);
    return done;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    const char *name;
    uint64_t folder = folder_of(to, new, &name);
    int done = syscall(SYS_linkat, from, old, to, new, flags);
    if (done == 0 && folder) note('L', inode_at(to, new), folder, 0, name, strlen(name), NULL, 0);
    return done;
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }
