import ArgumentParser

/// The options of `assent device enroll` that say what holds the device's keys.
struct DeviceKeyOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "Where the device's keys are: \(KeyProviderKinds.names). Default: a key file, which is not protected.")
    var keys: RekeyOptions.Target?

    @OptionGroup var hardware: HardwareOptions

    func validate() throws {
        let (required, optional) = keys?.kind.rekeyOptions ?? ([], [])
        if let extra = hardware.given.subtracting(required).subtracting(optional).min() {
            let kind = KeyProviderKinds.all.first {
                $0.rekeyOptions.required.union($0.rekeyOptions.optional).contains(extra)
            }
            throw ValidationError("--\(extra) belongs to --keys \(kind?.name ?? "").")
        }
        if keys?.kind.name == PKCS11Kind.name, !required.isSubset(of: hardware.given) {
            throw ValidationError("--keys pkcs11 needs --module and --token.")
        }
        _ = try choice(standardFile: "")
    }

    /// What was chosen.
    ///
    /// - Parameter standardFile: the path of the key file of `--keys key-file`.
    /// - Returns: the kind; `nil` when nothing was chosen.
    /// - Throws: `ValidationError`.
    func choice(standardFile: String) throws -> (any KeyProviderKind)? {
        do {
            return try keys?.kind.init(hardware, keyFile: standardFile)
        } catch let mistake as RekeyOptions.Mistake {
            throw ValidationError(mistake.text)
        }
    }
}
