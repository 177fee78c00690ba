/// What a host's certificate chain must contain besides being valid.
///
/// A pin names the key of any certificate of the chain as it was validated: leaf, intermediate or root (RFC 7469 §2.4).
public enum PinRequirement: Sendable, Hashable {
    /// One of these keys. Name at least two different ones: with one alone, losing that key locks out every installed
    /// app.
    case pins([Pin])

    /// This one key, without a backup, on purpose.
    case singlePin(Pin)

    /// No pin, on purpose: every authority in the trust roots may vouch for this host.
    case unpinned
}
