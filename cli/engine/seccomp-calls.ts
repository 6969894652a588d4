/**
 * System calls that a box may make, by theme. It is what the engines allow a container without
 * added rights by default, less `socketcall` and `io_uring_*`: both open sockets where the profile cannot
 * see the address family.
 */
export const allowedCalls: Readonly<Record<string, string>> = {
  files: `access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2
    fadvise64 fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl
    fcntl64 fdatasync flock fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futimesat getcwd
    getdents getdents64 inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl lchown lchown32 link
    linkat _llseek lseek lstat lstat64 mkdir mkdirat mknod mknodat name_to_handle_at newfstatat open openat openat2
    pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv rename
    renameat renameat2 rmdir sendfile sendfile64 splice stat stat64 statfs statfs64 statx symlink symlinkat sync
    sync_file_range syncfs tee truncate truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes
    vmsplice write writev`,
  attributes: `fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr listxattrat
    llistxattr lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat`,
  polling: `epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old
    eventfd eventfd2 _newselect poll ppoll ppoll_time64 pselect6 pselect6_time64 select signalfd signalfd4
    io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit`,
  sockets: `accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg
    recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown socketpair`,
  memory: `brk cachestat get_thread_area madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock
    mlock2 mlockall mmap mmap2 mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free
    pkey_mprotect remap_file_pages set_thread_area`,
  processes: `capget capset execve execveat exit exit_group fork futex futex_requeue futex_time64 futex_wait
    futex_waitv futex_wake get_robust_list getcpu getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups
    getgroups32 getpgid getpgrp getpid getppid getpriority getresgid getresgid32 getresuid getresuid32 getrlimit
    getrusage getsid gettid getuid getuid32 ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset
    landlock_restrict_self pause pidfd_open pidfd_send_signal prctl prlimit64 process_mrelease process_vm_readv
    process_vm_writev ptrace rseq sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
    sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity
    sched_setattr sched_setparam sched_setscheduler sched_yield seccomp set_robust_list set_tid_address setfsgid
    setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setpgid setpriority setregid setregid32
    setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setuid setuid32 tgkill tkill
    ugetrlimit vfork wait4 waitid waitpid`,
  signals: `restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
    rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaltstack sigprocmask sigreturn`,
  time: `adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64
    clock_nanosleep clock_nanosleep_time64 getitimer gettimeofday nanosleep setitimer time timer_create timer_delete
    timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime
    timerfd_gettime64 timerfd_settime timerfd_settime64 times`,
  exchange: `ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend
    mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 shmat
    shmctl shmdt shmget`,
  machine: `getrandom sysinfo uname`,
};

/** Calls that exist on some processors only, by the engine's name of the processor. */
export const processorCalls: readonly { arches: readonly string[]; names: string }[] = [
  { arches: ["amd64", "x32"], names: "arch_prctl" },
  { arches: ["amd64", "x32", "x86"], names: "modify_ldt" },
  { arches: ["arm", "arm64"], names: "arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2" },
  { arches: ["ppc64le"], names: "swapcontext sync_file_range2" },
  { arches: ["riscv64"], names: "riscv_flush_icache riscv_hwprobe" },
  { arches: ["s390", "s390x"], names: "s390_pci_mmio_read s390_pci_mmio_write s390_runtime_instr" },
];
