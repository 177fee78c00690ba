import Foundation

/// What is worth knowing about a trust file before it is published, and while it is in use.
package struct TrustFinding: Sendable, Hashable {
    /// Whether it must be put right: something has ended, or ends when one more thing goes wrong.
    package let isProblem: Bool

    package let text: String

    /// How early an end is told, in seconds.
    package static let notice = 30 * 86_400

    /// What there is to say of a file.
    ///
    /// - Parameters:
    ///   - content: what it says.
    ///   - now: seconds since 1970.
    /// - Returns: problems first.
    package static func all(of content: TrustContent, at now: Int) -> [TrustFinding] {
        var findings: [TrustFinding] = []
        func add(_ isProblem: Bool, _ text: String) { findings.append(TrustFinding(isProblem: isProblem, text: text)) }
        func end(_ what: String, _ time: Int) {
            if now >= time {
                add(true, "\(what) ended on \(day(time))")
            } else if time - now <= notice {
                add(false, "\(what) ends on \(day(time)), within 30 days: publish a version that replaces it")
            }
        }
        if let expires = content.expires { end("the file", expires) }
        for host in content.hosts {
            for pin in host.pins { end("\(host.host): the pin \(pin.pin)", pin.notAfter) }
            switch host.livePins(at: now).count {
            case 0: add(true, "\(host.host) has no valid pin, so it is not called")
            case 1: add(true, "\(host.host) has no backup: one pin is valid, and losing its key locks every app out")
            default: break
            }
        }
        for key in content.payload?.keys ?? [] { end("the payload key \(key.kid)", key.notAfter) }
        if let payload = content.payload, payload.keys.filter({ now < $0.notAfter }).count < 2 {
            add(true, "payload encryption has no backup: fewer than two keys are valid")
        }
        if content.source.isEmpty {
            add(false, "there is no source: apps get another version by their releases alone")
        }
        return findings.filter(\.isProblem) + findings.filter { !$0.isProblem }
    }

    private static func day(_ time: Int) -> String {
        Date(timeIntervalSince1970: TimeInterval(time)).formatted(.iso8601.year().month().day())
    }
}
