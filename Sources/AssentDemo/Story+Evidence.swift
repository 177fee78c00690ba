import Assent
import AssentJOSE
import AssentServer
import AssentSigningProtocol
import Foundation

/// What is left of a signed payment when the server is gone.
extension Story {
    /// The evidence of a payment, and the key by which it is judged.
    struct Evidence: Sendable {
        let bundle: JSONValue
        let identity: JSONValue
    }

    /// Where the server's signing interface is.
    func signing(_ assent: Assent) throws -> String {
        "\(world.endpoints.server)/signing/\(try JourneyRealm(assent.configuration.realm).path)"
    }

    /// Keeps the evidence of a transaction, and the identity key, which a judge would get in another way.
    func keepEvidence(of transaction: String, _ assent: Assent) async throws {
        let session = try await assent.tokens.session()
        let place = try signing(assent)
        let bundle = try await get(
            place + IssuerPath.evidence.path(transaction),
            [(world.endpoints.cookieName, session?.token.reveal() ?? "")])
        let configuration = try await get(place + IssuerPath.configuration.path(), [])
        evidence.withLock { $0 = Evidence(bundle: bundle, identity: configuration["identity"] ?? .null) }
        narration.tell(.note(.app, "keeps the evidence of the payment"))
    }

    /// Judges the evidence when there is no server any more, as `assent verify` does.
    package func judgeEvidence() {
        narration.tell(.step(number: 15, title: "The server is gone: the evidence of the payment stands without it"))
        guard let kept = evidence.withLock({ $0 }), let report = kept.report(of: kept.bundle.serialized()) else {
            return check("there is evidence of the payment", false)
        }
        for case .decided(_, _, _, _, let texts) in report.established {
            narration.tell(
                .note(
                    .phone,
                    "has signed: \(DisplayText.escapedForTerminal(texts.filter { !$0.isEmpty }.joined(separator: " · ")))"
                ))
        }
        check("a key of her phone signed what was shown; nothing is contradicted", report.exitStatus == 0)
        let forged = kept.report(of: kept.with("900.00 EUR", insteadOf: "100.00 EUR"))
        check("with another amount in it: contradicted", forged?.contradicted.isEmpty == false)
    }
}

extension Story.Evidence {
    /// What is established by a bundle; `nil` when it cannot be read.
    fileprivate func report(of bundle: String) -> EvidenceReport? {
        guard let read = try? EvidenceBundle(reading: Array(bundle.utf8)),
            let trust = (try? JWK(identity)).flatMap({ KeyThumbprint(text: $0.thumbprint) })
        else { return nil }
        return EvidenceVerification.report(on: read, trust: trust)
    }

    /// The bundle with another text in the document that the phone showed, whose signature stays as it was.
    fileprivate func with(_ other: String, insteadOf text: String) -> String {
        let document = bundle["transactions"]?.array?.first?["txd"]?.string ?? ""
        let parts = document.split(separator: ".").map(String.init)
        guard parts.count == 3, let content = Base64URL.decode(parts[1]) else { return "" }
        let changed = String(decoding: content, as: UTF8.self).replacing(text, with: other)
        let forged = [parts[0], Base64URL.encode(Array(changed.utf8)), parts[2]].joined(separator: ".")
        return bundle.serialized().replacing(document, with: forged)
    }
}
