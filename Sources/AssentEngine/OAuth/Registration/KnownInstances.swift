import AssentCore

/// What installations have registered, of those that were read lately, by the bytes of its text: each of their requests
/// to the token endpoint comes by here, and to read the key in it takes nearly as long as to verify a signature.
final class KnownInstances: Sendable {
    private let known = Locked(RecentValues<[UInt8], InstanceMetadata>(generation: 512))

    /// What a stored text says; `nil` when that is damaged.
    func metadata(stored text: String) -> InstanceMetadata? {
        // Texts are equal also when an accent is spelled in another way, and then a redirect URI is another one.
        let bytes = Array(text.utf8)
        if let metadata = known.withLock({ $0.find(bytes) }) { return metadata }
        guard let metadata = InstanceMetadata(stored: text) else { return nil }
        known.withLock { $0.keep(metadata, for: bytes) }
        return metadata
    }
}
