import AssentAuthorization
import AssentCore
import AssentJourney
import Testing

@testable import AssentResources
@testable import AssentTokens

@Suite("What an error of a layer below becomes, by the kind of the call")
struct CauseTests {
    /// The errors of each row of the table, by its name.
    private static let causes: [String: [any Error]] = [
        "nobody is signed in": [TokenError(.signInNeeded, "x"), AuthorizationError(.noSession, "x")],
        "the remembered user is not authenticated": [TokenError(.implicitUserMissing, "x")],
        "the device has no token": [TokenError(.deviceNotAuthenticated, "x")],
        "the version of the app is disabled": [TokenError(.tokenRefused, "x").saying("version_outdated")],
        "the device configuration lets this version call nothing": transport(.outdatedApplication),
        "registration: the server was never heard": [
            TokenError(
                .transport, "x", transportError: HTTPTransportError(.serverNotReachable, "x"))
        ],
        "registration: the version may not register": [
            TokenError(.registrationRefused, "x").saying("version_outdated")
        ],
        "registration: the version is not known": [TokenError(.registrationRefused, "x").saying("version_unknown")],
        "the server ended the registration": [TokenError(.notRegistered, "x")],
        "a scope is not granted": [TokenError(.scopeRefused, "x", status: 400, oauthError: "invalid_scope")],
        "the store is locked, or its disk full or read-only": stores(
            .busy, .keyUnavailable, .keyLocked, .diskFull, .notPermitted, .storageFailed, .newerFormat)
            + [KeyProviderError(.unavailable, "x")],
        "the store is damaged": stores(.truncated, .tampered, .rolledBack, .anotherStore, .wrongKey, .keyLost)
            + [KeyProviderError(.keyLost, "x")],
        "another flow holds the tokens": [TokenError(.busy, "x")],
        "the host is not pinned": transport(.notPinned),
        "a pin does not match": transport(.pinMismatch),
        "the host does not answer": transport(.connectFailed),
        "a probe has found something": transport(.integrityFailed),
        "the server takes no plain calls of this version": [TokenError.Code.tokenRefused, .registrationRefused].map {
            TokenError($0, "x", status: 403, oauthError: "payload_encryption_required")
        },
        "a call cannot be sealed, or its reply was not": transport(.payloadEncryptionFailed),
        "the trust file has expired, or all pins of the host": transport(.trustExpired),
        "a time limit passed": transport(.timedOut),
        "the call was cancelled": transport(.cancelled) + [CancellationError(), AuthorizationError(.cancelled, "x")],
        "somebody has signed out, or in, since the call began": [
            TokenError(.sessionChanged, "x"), AuthorizationError(.sessionChanged, "x"),
        ],
        "an approval is wanted": [
            AuthorizationError(.approvalNeeded, "x"), AuthorizationError(.refused, "x"),
            AuthorizationError(.expired, "x"), AuthorizationError(.timedOut, "x"),
            AuthorizationError(.untrustedAdvice, "x"), JourneyFailure(.unanswered, "x"),
        ],
        "the user declined": [AuthorizationError(.declined, "x"), JourneyFailure(.declined, "x")],
        "the outcome is unknown": [
            AuthorizationError(.outcomeUnknown, "x"),
            AuthorizationError(.outcomeUnknown, "x", transportError: HTTPTransportError(.timedOut, "x")),
        ],
    ]

    /// The store's errors as they come by the tokens, and as they come from a remembered user's container.
    private static func stores(_ codes: SecretStoreError.Code...) -> [any Error] {
        codes.flatMap { code -> [any Error] in
            let cause = SecretStoreError(code, "x")
            return [TokenError(.storageFailed, "x", storeError: cause), cause]
        }
    }

    /// The transport's error as it comes from each layer that may be waiting for it.
    private static func transport(_ code: HTTPTransportError.Code) -> [any Error] {
        let cause = HTTPTransportError(code, "x")
        return [
            cause, TokenError(.transport, "x", transportError: cause),
            AuthorizationError(.notSent, "x", transportError: cause),
            JourneyFailure(.transport, "x", transportError: cause),
        ]
    }

    @Test("19 Each cause has, for each kind of call, the domain and the number of its cell")
    func matrix() throws {
        let rows = try table("causes")
        #expect(Set(rows.map { $0[0] }) == Set(Self.causes.keys) && rows.count == Self.causes.count)
        for row in rows {
            for (kind, cell) in zip(CallKind.allCases, row.dropFirst()) where cell != "–" {
                for cause in try #require(Self.causes[row[0]]) where Self.arises(cause, kind) {
                    let error = try #require(ResourceError(cause, kind), "\(cause)")
                    let reason = error.reason.map { " \($0.rawValue)" } ?? ""
                    #expect("\(error.domain) \(error.number)\(reason)" == cell, "\(row[0]), \(kind): \(cause)")
                }
            }
        }
    }

    /// Only a user's call has a session to miss.
    private static func arises(_ cause: any Error, _ kind: CallKind) -> Bool {
        (cause as? AuthorizationError)?.code != .noSession || kind == .user
    }

    @Test("19 A sign-out that the server was not told of is 10009, and one that left something here says why")
    func signOut() {
        #expect(SignOutResult(session: nil, undone: []).error == nil)
        let untold = SignOutResult(session: nil, undone: [.init(.revokeTokens, "offline")]).error
        #expect(untold?.number == 10009 && untold?.domain == .generic && untold?.detail == "revokeTokens: offline.")
        let failure = TokenError(.storageFailed, "x", storeError: SecretStoreError(.keyLocked, "x"))
        #expect(SignOutResult(session: nil, undone: [], localFailure: failure).error?.number == 9024)
    }

    @Test("19 A cause that only one kind can have is in no other kind's domain, whatever the kind is")
    func domains() throws {
        for kind in CallKind.allCases {
            for cause in Self.causes.values.joined() {
                let error = try #require(ResourceError(cause, kind))
                #expect([kind.domain, .generic, .url].contains(error.domain), "\(kind): \(cause)")
                #expect(error.number != 10000, "\(cause)")
            }
        }
    }
}
