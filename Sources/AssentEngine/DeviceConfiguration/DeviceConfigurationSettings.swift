package import AssentJOSE

/// How a realm signs what it tells installations of its apps.
package struct DeviceConfigurationSettings: Sendable {
    /// The key, which signs nothing else. Trust files name it in `config`.
    package let key: SoftwareSigningKey

    /// The third part of audiences, for example `production`: an app of another environment refuses the document.
    package let environment: String

    /// Settings. The environment has 1 to 64 letters, digits, `.`, `_` and `-`.
    package init(key: SoftwareSigningKey, environment: String) { (self.key, self.environment) = (key, environment) }
}
