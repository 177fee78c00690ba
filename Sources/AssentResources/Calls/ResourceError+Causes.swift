package import AssentAuthorization
import AssentCore
import AssentJourney
package import AssentTokens

extension ResourceError {
    /// What an error of a layer below is for an app that calls resources, by the kind of the call; `nil` for what no
    /// layer throws. The table is in `docs/resources.md`.
    init?(_ error: any Error, _ kind: CallKind) {
        switch error {
        case let error as ResourceError: self = error
        case let error as HTTPTransportError: self.init(error, kind.domain)
        case let error as TokenError: self.init(error, kind)
        case let error as AuthorizationError: self.init(error, kind)
        case let error as SecretStoreError:
            self.init(
                .generic, error.isDamage ? .storageDamaged : .storageLocked, error.detail, suggestion: error.suggestion)
        case let error as KeyProviderError:
            self.init(
                .generic, error.code == .keyLost ? .storageDamaged : .storageLocked, error.detail,
                suggestion: error.suggestion)
        case let error as JourneyError where error.code == .declined: self = .declined(error.detail)
        case let error as JourneyFailure where error.code == .declined: self = .declined(error.detail)
        case let error as JourneyError where error.code == .sessionTimedOut:
            self.init(
                kind.domain, .approvalNeeded, "The approval took too long, and nothing was approved.",
                suggestion: "Send the request again.")
        case let error as JourneyFailure where error.transportError != nil:
            guard let transport = error.transportError else { return nil }
            self.init(transport, kind.domain)
        case let error as any AssentError where error is JourneyError || error is JourneyFailure:
            self.init(kind.domain, .approvalNeeded, error.detail, suggestion: error.suggestion)
        case is CancellationError: self.init(.generic, .actionCancelled, "The call was cancelled.")
        default: return nil
        }
    }

    /// What an error of a sign-in is: where the server gives no answer, that is said, and not why.
    package static func ofSignIn(_ error: any Error, _ kind: CallKind) -> ResourceError {
        let known = ResourceError(error, kind) ?? .unforeseen(error, kind)
        guard known.isTransient, known.domain == .url else { return known }
        return ResourceError(
            .generic, .serverNotReachable, known.detail, suggestion: known.suggestion,
            transportError: known.transportError)
    }

    /// An error that is the app's own.
    static func unforeseen(_ error: any Error, _ kind: CallKind) -> ResourceError {
        ResourceError(kind.domain, .approvalNeeded, "The app's own code failed: \(type(of: error)).")
    }

    private static func declined(_ detail: String) -> ResourceError {
        ResourceError(.generic, .actionCancelled, detail)
    }

    private init(_ error: TokenError, _ kind: CallKind) {
        if let transport = error.transportError {
            self.init(transport, kind.domain)
            return
        }
        let (domain, code): (Domain, Code) =
            switch error.code {
            case _ where error.assentError == "version_outdated": (.generic, .outdatedApplication)
            case _ where error.oauthError == "payload_encryption_required": (.generic, .payloadEncryptionRequired)
            case .signInNeeded, .deviceNotAuthenticated, .implicitUserMissing: (kind.domain, kind.notAuthenticated)
            case .sessionChanged: (.generic, .actionCancelled)
            case .notRegistered: (.generic, .deviceDeregistered)
            case .scopeRefused: (kind.domain, .scopeRefused)
            case .busy: (.generic, .actionAlreadyInProgress)
            case .storageFailed: (.generic, error.storeError?.isDamage ?? true ? .storageDamaged : .storageLocked)
            case .keyUnavailable, .clientKeyUnavailable: (.generic, .storageLocked)
            case .clientKeyMissing: (.generic, .storageDamaged)
            case .registrationRefused: (.generic, .deviceRegistrationFailure)
            case .registrationUnknown: (.generic, .serverNotReachable)
            case .unprovable: (kind.domain, .invalidRequest)
            case .malformedReply, .issuerMismatch, .unusableEndpoint: (.url, .badServerResponse)
            case .webLinkDisabled: (.generic, .webLinkDisabled)
            case .webLinkRefused where error.oauthError == "invalid_target": (kind.domain, .invalidRequest)
            case .tokenRefused where error.isTransient, .webLinkRefused where error.isTransient:
                (.url, .badServerResponse)
            default: (kind.domain, kind.notAuthenticated)
            }
        self.init(
            domain, code, error.detail, suggestion: error.suggestion,
            reason: code == .deviceRegistrationFailure ? Reason(error) : nil)
    }

    private init(_ error: AuthorizationError, _ kind: CallKind) {
        if error.code != .outcomeUnknown, let transport = error.transportError {
            self.init(transport, kind.domain)
            return
        }
        let (domain, code): (Domain, Code) =
            switch error.code {
            case .declined, .cancelled, .sessionChanged: (.generic, .actionCancelled)
            case .outcomeUnknown: (kind.domain, .outcomeUnknown)
            case .invalidConfiguration, .invalidRequest, .bodyNotReplayable: (kind.domain, .invalidRequest)
            case .noSession where kind == .user, .strongerSignInNeeded where kind == .user:
                (kind.domain, .userNotAuthenticated)
            default: (kind.domain, .approvalNeeded)
            }
        self.init(
            domain, code, error.detail, suggestion: error.suggestion, pending: error.pending,
            transportError: error.transportError)
    }
}

extension SecretStoreError {
    /// Whether what is stored cannot be read any more. Every other store is whole, and cannot be used now: it is
    /// locked, its disk is full or read-only, a newer version has written it. To wipe that would lose what is there.
    fileprivate var isDamage: Bool {
        let codes: [Code] = [
            .truncated, .tampered, .rolledBack, .anotherStore, .wrongKey, .keyLost, .olderFormat, .expired, .revoked,
        ]
        return codes.contains(code)
    }
}

extension ResourceError.Reason {
    /// Why the registration endpoint refused (RFC 7591 §3.2.2), where it says so.
    init?(_ error: TokenError) {
        switch error.oauthError {
        case _ where error.assentError == "version_unknown": self = .unknownVersion
        case "invalid_token": self = .tokenNeeded
        case "invalid_software_statement", "unapproved_software_statement": self = .statementRefused
        case _ where error.status == 429: self = .tooMany
        case _ where error.status == 401: self = .tokenNeeded
        default: return nil
        }
    }
}
