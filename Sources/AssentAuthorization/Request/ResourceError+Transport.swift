package import AssentCore

extension ResourceError {
    /// What an error of the transport is for an app that asked for a resource.
    ///
    /// - Parameters:
    ///   - error: the transport's.
    ///   - domain: whose request it was.
    package init(_ error: HTTPTransportError, _ domain: Domain) {
        let code = Code(error.code)
        let place: Domain =
            switch code {
            case .hostRefused: domain
            case .actionCancelled, .integrityFailed, .payloadEncryptionFailed, .trustExpired, .outdatedApplication,
                .serverNotReachable:
                .generic
            default: .url
            }
        self.init(
            place, code, error.detail, suggestion: error.suggestion, probe: error.probe?.rawValue, transportError: error
        )
    }
}

extension ResourceError.Code {
    fileprivate init(_ code: HTTPTransportError.Code) {
        self =
            switch code {
            case .invalidRequest: .badURL
            case .nameNotResolved: .cannotFindHost
            case .connectFailed: .cannotConnectToHost
            case .untrustedServer, .pinMismatch: .serverUntrusted
            case .notPinned: .hostRefused
            case .trustExpired: .trustExpired
            case .integrityFailed: .integrityFailed
            case .outdatedApplication: .outdatedApplication
            case .serverNotReachable: .serverNotReachable
            case .tlsFailed: .secureConnectionFailed
            case .timedOut: .timedOut
            case .cancelled: .actionCancelled
            case .connectionClosed: .connectionLost
            case .malformedReply, .headerTooLarge: .badServerResponse
            case .bodyTooLarge: .replyTooLarge
            case .tooManyRequests: .resourceUnavailable
            case .payloadEncryptionFailed: .payloadEncryptionFailed
            default: .transportFailed
            }
    }
}
