#if canImport(Darwin)
import AssentCore
import Darwin

/// Finds a debugger: the kernel marks a process that is traced (`P_TRACED`).
struct TracedProbe: IntegrityProbe {
    let kind = IntegrityKind.debugger

    func finding() -> String? {
        var name: [Int32] = [CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid()]
        var process = kinfo_proc()
        var size = MemoryLayout<kinfo_proc>.stride
        guard sysctl(&name, UInt32(name.count), &process, &size, nil, 0) == 0, size > 0 else {
            return "It cannot be seen whether another program traces this process."
        }
        return process.kp_proc.p_flag & P_TRACED == 0 ? nil : "Another program traces this process."
    }
}

/// Finds libraries that the dynamic linker was told to load before those of the program.
struct InsertedLibraryProbe: IntegrityProbe {
    let kind = IntegrityKind.preload
    private let allowed: Set<String>

    init(allowing allowed: Set<String>) { self.allowed = allowed }

    func finding() -> String? {
        guard let value = getenv("DYLD_INSERT_LIBRARIES").map({ String(cString: $0) }) else { return nil }
        let isFine = value.split(separator: ":").allSatisfy { allowed.contains(String($0)) }
        return isFine ? nil : "DYLD_INSERT_LIBRARIES names a library that is not allowed."
    }
}

/// Finds a program that has become root, and on iOS what the usual jailbreaks leave behind.
struct JailbreakProbe: IntegrityProbe {
    let kind = IntegrityKind.rooted

    func finding() -> String? {
        if geteuid() == 0, getuid() != 0 { return "The program has become root, and another user has started it." }
        #if os(iOS) && !targetEnvironment(simulator)
        for path in ["/var/jb", "/Applications/Cydia.app", "/Applications/Sileo.app", "/usr/sbin/sshd"]
        where access(path, F_OK) == 0 {
            return "There is a file of a jailbreak."
        }
        #endif
        return nil
    }
}
#endif
