public import AssentCore

/// The probes of this platform.
public enum IntegrityProbes {
    /// One for each kind that can be looked for here; none on a platform that Assent has no probes for.
    public static var platform: [any IntegrityProbe] { platform(vaults: [], allowing: []) }

    /// - Parameters:
    ///   - vaults: the directories of the app's vaults.
    ///   - libraries: the libraries that may be loaded before those of the program.
    /// - Returns: as ``platform``.
    package static func platform(vaults: [String], allowing libraries: Set<String>) -> [any IntegrityProbe] {
        #if os(Linux)
        [DebuggerProbe(), PreloadProbe(allowing: libraries), RootedProbe(vaults: vaults)]
        #elseif canImport(Darwin)
        [TracedProbe(), InsertedLibraryProbe(allowing: libraries), JailbreakProbe()]
        #else
        []
        #endif
    }
}
