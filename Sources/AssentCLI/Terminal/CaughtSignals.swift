import Foundation

/// The signals that would end, stop or wake this process, caught while it hides what is typed.
///
/// The terminal outlives the process: what was hidden must be shown again before the process ends or stops.
struct CaughtSignals {
    /// What happened first.
    enum Event {
        case input
        case signal(Int32)
    }

    private static let numbers = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT]

    /// Where the handler writes the number of a signal. A handler reaches only what is global, and may do little more
    /// than a system call.
    private static let pipe: (reading: Int32, writing: Int32) = {
        var ends: [Int32] = [-1, -1]
        guard Foundation.pipe(&ends) == 0 else { return (-1, -1) }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        return (ends[0], ends[1])
    }()

    private var former: [(number: Int32, action: sigaction)] = []

    /// Catches them from now on, except those that the program which started this process wants ignored.
    init() {
        _ = Self.pipe
        catchAll()
    }

    /// Gives them back to those who had them before.
    mutating func release() {
        for (number, action) in former {
            var action = action
            sigaction(number, &action, nil)
        }
        former = []
    }

    /// Lets a caught signal do what it does without this: end the process, or stop it until it is continued.
    mutating func deliver(_ number: Int32) {
        release()
        // The threads of Swift's executor block signals. Sent to this very thread, it has its effect before `raise`
        // returns.
        var (open, before) = (sigset_t(), sigset_t())
        sigemptyset(&open)
        sigaddset(&open, number)
        pthread_sigmask(SIG_UNBLOCK, &open, &before)
        raise(number)
        pthread_sigmask(SIG_SETMASK, &before, nil)
        while caught() != nil {}
        catchAll()
    }

    /// Waits until a signal was caught or `descriptor` has something to read.
    func next(orInputOn descriptor: Int32) -> Event {
        while true {
            if let number = caught() { return .signal(number) }
            var waiting = [
                pollfd(fd: Self.pipe.reading, events: Int16(POLLIN), revents: 0),
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&waiting, nfds_t(waiting.count), -1)
            if count < 0, errno != EINTR { return .input }
            if count > 0, waiting[0].revents == 0 { return .input }
        }
    }

    private mutating func catchAll() {
        guard former.isEmpty, Self.pipe.writing >= 0 else { return }
        for number in Self.numbers {
            var (old, new) = (sigaction(), sigaction())
            sigaction(number, nil, &old)
            if old.isIgnored { continue }
            // Without SA_RESTART, so that a signal interrupts waiting and reading.
            new.handler = { number in
                let error = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = write(CaughtSignals.pipe.writing, &byte, 1)
                errno = error
            }
            if sigaction(number, &new, nil) == 0 { former.append((number, old)) }
        }
    }

    private func caught() -> Int32? {
        var byte: UInt8 = 0
        return read(Self.pipe.reading, &byte, 1) == 1 ? Int32(byte) : nil
    }
}

extension sigaction {
    fileprivate var handler: (@convention(c) (Int32) -> Void)? {
        get {
            #if canImport(Darwin)
            __sigaction_u.__sa_handler
            #else
            __sigaction_handler.sa_handler
            #endif
        }
        set {
            #if canImport(Darwin)
            __sigaction_u.__sa_handler = newValue
            #else
            __sigaction_handler.sa_handler = newValue
            #endif
        }
    }

    /// Whether it is `SIG_IGN`, as for what `nohup` starts.
    fileprivate var isIgnored: Bool { unsafeBitCast(handler, to: Int.self) == 1 }
}
