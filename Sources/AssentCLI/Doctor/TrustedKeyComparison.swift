import AssentConfiguration
import AssentCore
import AssentEngine
import AssentSigningProtocol
import AssentTrust
import Foundation

/// One payload key of a trust file beside those that the server's database has.
struct TrustedKeyComparison {
    let key: TrustedPayloadKey

    /// The keys of the database.
    let listed: [PayloadKeys.Listed]

    /// Seconds since 1970.
    let now: Int64

    /// What is wrong; `nil` where the server takes the key as long as the file says, and longer than 30 days.
    var finding: Diagnosis? {
        let name = "the payload key \(key.kid.text) of the trust file"
        let remedy = "publish a version with keys that 'assent admin payload-keys list' shows"
        guard let found = listed.first(where: { $0.kid == key.kid.text && $0.publicKey == Base64URL.encode(key.x) })
        else {
            return Diagnosis(
                .problem, "the server lacks \(name), so that no session is made with it: \(remedy)")
        }
        if let withdrawn = found.withdrawnAt {
            return Diagnosis(.problem, "\(name) was withdrawn at the server on \(day(withdrawn)): \(remedy)")
        }
        if found.notAfter <= now {
            return Diagnosis(.problem, "\(name) ended at the server on \(day(found.notAfter)): \(remedy)")
        }
        if found.notBefore > now {
            return Diagnosis(.note, "the server takes \(name) from \(day(found.notBefore)) on, and not yet")
        }
        if found.notAfter - now <= Int64(TrustFinding.notice) {
            return Diagnosis(
                .note,
                "the server takes \(name) until \(day(found.notAfter)), within 30 days: "
                    + "'assent admin payload-keys add', and publish a version with the new key")
        }
        guard found.notAfter < Int64(key.notAfter) else { return nil }
        return Diagnosis(
            .note,
            "the server takes \(name) until \(day(found.notAfter)), and the file has it for longer: "
                + "publish a version with that end, or without the key, before then")
    }

    private func day(_ time: Int64) -> String {
        Date(timeIntervalSince1970: TimeInterval(time)).formatted(.iso8601.year().month().day())
    }
}
