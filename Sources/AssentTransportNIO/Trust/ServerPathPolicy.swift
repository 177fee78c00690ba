import AssentCore
import Foundation
import SwiftASN1
@_spi(FixedExpiryValidationTime) import X509

/// One condition that a path to a trusted root must meet.
protocol PathRule: Sendable {
    /// What is wrong with this path, the server's certificate first; `nil` when nothing is.
    func failure(of path: UnverifiedCertificateChain) -> TrustFailure?
}

/// All conditions that the path to a server must meet, in the order in which they are asked.
///
/// The pins come last: where they fail, everything else was right. Since they are a condition of the path that is
/// looked for, the search goes on to other paths when they fail.
struct ServerPathPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier]

    private let own: [any PathRule]
    private let standard: RFC5280Policy
    private let identity: ServerIdentityPolicy
    private let pins: PinRule?

    /// The conditions for one server.
    ///
    /// - Parameters:
    ///   - question: which server, and its pins.
    ///   - now: for the certificates' validity.
    init(_ question: ServerTrustQuestion, now: Date) {
        let rules: [any PathRule] = [StrengthRule(), UsageRule(), ValidityRule(now: now)]
        own = question.isAddress ? rules : rules + [NameRule(host: question.host)]
        standard = RFC5280Policy(fixedExpiryValidationTime: now)
        identity =
            question.isAddress
            ? ServerIdentityPolicy(serverHostname: nil, serverIP: question.host)
            : ServerIdentityPolicy(serverHostname: question.host, serverIP: nil)
        pins = question.pins.map { PinRule(pins: $0) }
        verifyingCriticalExtensions =
            standard.verifyingCriticalExtensions + identity.verifyingCriticalExtensions
            + [.X509ExtensionID.extendedKeyUsage]
    }

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        guard let failure = failure(of: chain) else { return .meetsPolicy }
        return .failsToMeetPolicy(reason: failure.description)
    }

    /// What is wrong with this path, the server's certificate first; `nil` when nothing is.
    func failure(of path: UnverifiedCertificateChain) -> TrustFailure? {
        for rule in own {
            if let failure = rule.failure(of: path) { return failure }
        }
        // Validity is checked here a second time; the rule above only says it with its date.
        if case .failsToMeetPolicy(let reason) = standard.chainMeetsPolicyRequirements(chain: path) {
            return .library(reason.description)
        }
        var identity = identity
        if case .failsToMeetPolicy(let reason) = identity.chainMeetsPolicyRequirements(chain: path) {
            return .library(reason.description)
        }
        return pins?.failure(of: path)
    }
}
