import Assent
import AssentCore

/// What `assent request --sealed` demands and shows.
struct SealingDemand {
    let profile: ClientProfile

    /// The profile whose messages are shown as they leave and come.
    func showing(on console: Console) -> ClientProfile {
        var shown = profile
        shown.payloadTrace = { console.warn(Self.line($0)) }
        return shown
    }

    /// Refuses a request that would not be sealed, before anything is sent.
    ///
    /// - Parameter request: what is to be sent.
    /// - Throws: ``CommandFailure``.
    func check(_ request: ResourceRequest) throws {
        let address = request.path.contains("://") ? request.path : profile.file.resourceBase ?? ""
        let origin = try? Origin(address)
        let sealed = profile.file.payloadEncryption.compactMap { try? Origin($0.origin) }
        guard let origin, sealed.contains(origin) else {
            let place = DisplayText.escapedForTerminal(origin?.description ?? address)
            throw CommandFailure(
                "\(place) is not an origin of payloadEncryption in the client's file, so the request would not be sealed. "
                    + "Nothing was sent. Write the server's keys there, or leave --sealed out.")
        }
    }

    /// What others see of a message, and its session's age.
    static func line(_ trace: PayloadTrace) -> String {
        let length = trace.length.map { "\($0) bytes" } ?? "as it comes"
        guard let number = trace.number, let age = trace.age else {
            return "\(trace.kind.rawValue) with \(trace.origin): \(length)"
        }
        let direction = trace.kind == .reply ? "from" : "to"
        return "sealed \(trace.kind.rawValue) \(number) \(direction) \(trace.origin): \(length), session \(age) s old"
    }
}
