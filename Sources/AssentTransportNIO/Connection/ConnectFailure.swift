import AssentCore
import NIOCore
import NIOPosix

/// Why TCP did not connect. Each reason asks for another remedy.
enum ConnectFailure: Equatable {
    /// The name has no address.
    case notResolved
    /// The name has an address that must not be called.
    case addressRefused
    /// The machine answered that nothing listens on the port.
    case refused
    /// No route leads there, or nothing answered.
    case unreachable
    case other

    init(_ error: any Error) {
        if let failure = error as? NIOConnectionError {
            if failure.connectionErrors.isEmpty,
                failure.dnsAError is RefusedAddress || failure.dnsAAAAError is RefusedAddress
            {
                self = .addressRefused
            } else if failure.connectionErrors.isEmpty, failure.dnsAError != nil || failure.dnsAAAAError != nil {
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
            HTTPTransportError(
                .nameNotResolved, "The name \(origin.host.text) has no address.")
        case .addressRefused: RefusedAddress.error(origin)
        case .refused:
            HTTPTransportError(
                .connectFailed, "\(origin.authority) refused the connection: nothing listens there.",
                suggestion: "Check that the server runs, and its port.")
        case .unreachable:
            HTTPTransportError(
                .connectFailed, "\(origin.authority) cannot be reached.",
                suggestion: "Check the network connection, and try again later.")
        case .other:
            HTTPTransportError(.connectFailed, "There is no connection to \(origin.authority).")
        }
    }
}
