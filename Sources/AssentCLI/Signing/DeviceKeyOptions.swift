import ArgumentParser

/// The options of `assent device enroll` that say what holds the device's keys.
struct DeviceKeyOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "Where the device's keys are: \(KeyProviderKinds.names). Default: a key file, which is not protected.")
    var keys: RekeyOptions.Target?

    @OptionGroup var hardware: HardwareOptions

    func validate() throws { _ = try choice(standardFile: "") }

    /// The kind of key provider that was chosen; `nil` if nothing was chosen. `standardFile` is the path of the file of
    /// `--keys key-file`.
    ///
    /// - Throws: `ValidationError`.
    func choice(standardFile: String) throws -> (any KeyProviderKind)? {
        try hardware.kind(keys, standardFile: standardFile)
    }
}
