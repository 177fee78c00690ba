import AssentSigningProtocol

/// What happens after wrong passwords, as the server's policy says.
public enum SigningPasswordLock: Sendable, Hashable {
    /// Nothing.
    case none
    /// After a failure the device waits so many seconds, and after each further one twice as long, up to the failure
    /// number `counter`.
    case delay(seconds: Int, counter: Int)
    /// After `max` failures in a row the device destroys the keys.
    case counter(max: Int)
    /// The server counts: after `max` tries it is locked until the user authenticates, and after `cap` evaluations
    /// without the right password the keys are lost for ever. `delays` are the seconds after the first, second, … try;
    /// the last one repeats.
    case server(max: Int, cap: Int, delays: [Int])

    init(_ lock: PasswordLock) {
        switch lock {
        case .local(.none): self = .none
        case .local(.delay(let seconds, let counter)): self = .delay(seconds: seconds, counter: counter)
        case .local(.counter(let max)): self = .counter(max: max)
        case .assisted(let lock): self = .server(max: lock.max, cap: lock.cap, delays: lock.delays)
        }
    }
}
