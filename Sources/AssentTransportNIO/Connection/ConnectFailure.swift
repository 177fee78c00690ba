import AssentCore
import NIOCore
import NIOPosix

/// Why TCP did not connect: what a person would do about each is different.
enum ConnectFailure: Equatable {
    /// The name has no address.
    case notResolved
    /// A machine answered that nothing listens there.
    case refused
    /// No way leads there, or nobody answered.
    case unreachable
    case other

    init(_ error: any Error) {
        if let failure = error as? NIOConnectionError {
            if failure.connectionErrors.isEmpty, failure.dnsAError != nil || failure.dnsAAAAError != nil {
                self = .notResolved
            } else {
                // One machine with several addresses: a refusal by one of them says more than silence of the others.
                let reasons = failure.connectionErrors.map { ConnectFailure($0.error) }
                self = reasons.first { $0 == .refused } ?? reasons.first { $0 == .unreachable } ?? .other
            }
        } else if let failure = error as? IOError {
            switch failure.errnoCode {
            case ECONNREFUSED: self = .refused
            case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, ETIMEDOUT: self = .unreachable
            default: self = .other
            }
        } else if case .connectTimeout = error as? ChannelError {
            self = .unreachable
        } else {
            self = .other
        }
    }

    /// The failure of a call to `origin`.
    func error(_ origin: Origin) -> HTTPTransportError {
        switch self {
        case .notResolved:
            HTTPTransportError(.nameNotResolved, "\(origin.host.text) has no address")
        case .refused:
            HTTPTransportError(.connectFailed, "\(origin.authority) refused the connection: nothing listens there")
        case .unreachable:
            HTTPTransportError(.connectFailed, "\(origin.authority) cannot be reached")
        case .other:
            HTTPTransportError(.connectFailed, "no connection to \(origin.authority)")
        }
    }
}
