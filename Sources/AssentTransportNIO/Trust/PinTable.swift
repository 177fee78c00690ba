import AssentCore

/// The keys that are acceptable for one host.
enum AcceptableKeys: Sendable, Hashable {
    case any
    case oneOf(Set<Pin>)

    init(_ requirement: PinRequirement, host: String) throws(NIOTransportError) {
        switch requirement {
        case .unpinned: self = .any
        case .singlePin(let pin): self = .oneOf([pin])
        case .pins(let pins):
            let distinct = Set(pins)
            guard distinct.count >= 2 else {
                throw NIOTransportError(
                    .tooFewPins, "\(host) has \(distinct.count) different pins, and needs two.")
            }
            self = .oneOf(distinct)
        }
    }
}

/// The pins of all hosts, by normalised host, with or without a port.
struct PinTable: Sendable {
    private struct Key: Hashable {
        let host: NormalizedHost
        let port: Int?
    }

    private var entries: [Key: AcceptableKeys] = [:]

    init(_ pins: [String: PinRequirement]) throws(NIOTransportError) {
        for (text, requirement) in pins {
            let key = try Self.key(text)
            guard entries[key] == nil else { throw NIOTransportError(.invalidHost, "\(text) is named twice.") }
            entries[key] = try AcceptableKeys(requirement, host: text)
        }
    }

    /// The more specific entry wins; `nil` means that the configuration says nothing about this host.
    func keys(of origin: Origin) -> AcceptableKeys? {
        entries[Key(host: origin.host, port: origin.port)] ?? entries[Key(host: origin.host, port: nil)]
    }

    private static func key(_ text: String) throws(NIOTransportError) -> Key {
        if let host = try? NormalizedHost(text) { return Key(host: host, port: nil) }
        guard let origin = try? Origin(headerValue: "https://\(text)") else {
            throw NIOTransportError(.invalidHost, "\(text) is not a host or host:port.")
        }
        return Key(host: origin.host, port: origin.port)
    }
}
